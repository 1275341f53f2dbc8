"""Policies that split the jobs or the cluster and let another policy decide over each part."""
