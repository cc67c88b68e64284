"""GDP beside HDP, Placeto and every baseline: ``opgym reproduce gdp``.

What was measured comes with the package (``stored/``), so that tables are made without a training; what is missing is
measured, and stored as soon as it is.
"""
