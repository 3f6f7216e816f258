//! Checks that need no account, no download and no network.
