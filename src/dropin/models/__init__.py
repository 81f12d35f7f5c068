"""Neural network building blocks of the learners and of the learned types.

* `layers`: linear layer, multilayer perceptron, LSTM
* `type_inference`: type vectors from the observed behaviour of each agent
* `coordination`: the coordination graph and the action values computed from it (Eq. 5 to 7, 9)
* `agent_model`: predictions of the agents' next actions (Eq. 8)
* `relational`: message passing between the nodes of a complete graph
* `attention`: multi-head attention over agents

All of them work on a single environment, with one row per slot; use `vmap` for a batch.
"""
