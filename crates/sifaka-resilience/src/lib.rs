//! Retry, circuit breaker, rate limit, timeout and fallback, as policies over closures.
//!
//! One implementation serves models, retrievers, embedders and stores. The layers stand in this
//! order, outermost first:
//!
//! ```text
//! fallback → retry → circuit breaker → rate limit → timeout → call
//! ```
//!
//! So every try of a retry asks the breaker anew, a call that times out counts against the
//! breaker, the time spent waiting for a turn is not part of the call's timeout, and the next
//! component is asked only after the one before it has used up its tries.
//!
//! - [`Resilience`] is the configuration: plain data, on by default, each layer can be switched
//!   off.
//! - A [`Guard`] is that configuration at work for one component. Its clones share the breaker,
//!   the rate limit and the retry budget.
//! - [`fall_back`] asks one component after the other.
//! - [`GuardedModel`], [`FallbackModel`] and [`GuardedRetriever`] do all this behind the contracts
//!   of core.
//!
//! Everything that happens besides the call itself is told to the context's observer as an
//! [`EventKind::Resilience`](sifaka_core::EventKind::Resilience), and all waiting is done on the
//! context's clock.
//!
//! ```
//! use sifaka_core::{Context, Error, ErrorKind};
//! use sifaka_resilience::{Guard, Resilience};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! let ctx = Context::new();
//! let guard = Guard::new("weather", &Resilience::default());
//! let mut tries = 0;
//! let answer = guard
//!     .call(&ctx, |_| {
//!         tries += 1;
//!         let up = tries == 3;
//!         async move {
//!             if up {
//!                 return Ok("sunny");
//!             }
//!             Err(Error::new(ErrorKind::Unavailable, "weather", "ask", "connection refused"))
//!         }
//!     })
//!     .await?;
//! assert_eq!((answer, tries), ("sunny", 3));
//! # Ok::<(), Error>(()) }).unwrap();
//! ```

mod backoff;
pub mod circuit;
mod fallback;
mod guard;
mod health;
mod limiter;
mod model;
mod options;
mod retriever;
mod switch;
mod sync;

pub use fallback::{FallbackModel, fall_back, falls_back};
pub use guard::Guard;
pub use health::{Health, health};
pub use model::GuardedModel;
pub use options::{Breaker, RateLimit, Resilience, Retry, RetryBudget};
pub use retriever::GuardedRetriever;
