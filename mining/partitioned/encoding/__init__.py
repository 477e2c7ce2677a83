"""From a source of transactions to blocks in a folder, with bounded memory."""
