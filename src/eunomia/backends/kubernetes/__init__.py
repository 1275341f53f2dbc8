"""The Kubernetes backend: gangs are Jobs whose pods Eunomia binds to nodes, all of a gang or none."""
