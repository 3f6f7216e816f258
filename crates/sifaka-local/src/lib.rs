//! The embedded model and embedders: GGUF weights on kernels of our own, no server, no key.
