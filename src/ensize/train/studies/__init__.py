"""Studies: from a file that says which networks there should be to a store of them."""
