"""Neural parts: type inference, the coordination graph, the agent model.

All are written for one environment with a row a slot; `vmap` them over environments.
"""
