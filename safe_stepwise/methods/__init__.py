"""How a question is answered: the protocol, the registry, one file a method."""
