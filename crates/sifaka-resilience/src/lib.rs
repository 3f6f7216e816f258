//! Retry, circuit breaker, rate limit, timeout and fallback, as policies over closures.
