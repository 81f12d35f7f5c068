"""Views for other people's tools. Needs the extra `envs`."""
