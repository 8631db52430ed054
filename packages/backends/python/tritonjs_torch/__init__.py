"""The program of the backend `pytorch`, which runs TorchScript files and modules of PyTorch."""
