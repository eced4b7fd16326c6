//! Work of several reads as one fetch.

use std::task::{Context, Poll, Waker};

use crate::error::Result;
use crate::fetch::Fetch;

/// Runs `future` as far as it goes without waiting: if all its reads are at hand, the answer is.
pub(super) fn start<'a, T>(future: impl Future<Output = Result<T>> + Send + 'a) -> Fetch<'a, T> {
    let mut future = Box::pin(future);
    // Whoever awaits the fetch polls it again and leaves a waker of their own.
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(result) => Fetch::from_result(result),
        Poll::Pending => Fetch::Pending(future),
    }
}
