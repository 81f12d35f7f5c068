"""What all other rooms speak: specs and the registry, observations, settings, errors and files."""
