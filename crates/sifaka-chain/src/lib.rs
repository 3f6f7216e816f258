//! The chain: write, check, advise, and go round until the text passes or a budget ends.
