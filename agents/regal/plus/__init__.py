"""Our own policy for the tasks of REGAL: it says where ops stand in good solutions, and learns that from searches."""
