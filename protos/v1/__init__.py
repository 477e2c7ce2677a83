"""Version 1 of the messages; the `*_pb2` modules are generated from the `.proto` files beside them."""
