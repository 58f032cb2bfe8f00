"""How faithful the converter is: structure and text of documents, side by side with its peers."""
