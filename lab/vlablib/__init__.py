"""vlab: a real hypervisor, with real guests, in an emulated computer (see docs/lab.md)."""
