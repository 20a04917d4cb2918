"""Files of the machine: what each operation promises of order and of durability."""
