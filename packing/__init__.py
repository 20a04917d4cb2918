"""`make dist`: the wheel, and an environment with Python that runs wherever it is unpacked."""
