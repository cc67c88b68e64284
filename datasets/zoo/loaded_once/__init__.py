"""What takes seconds to import: a module for each source of definitions, which a process loads before it forks."""
