//! An answer that is ready, or will be.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Result;

/// A future that the store boxed because the answer is not at hand.
pub type Deferred<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The answer to a read: at hand without an allocation, or a future.
///
/// It is itself a future; a synchronous engine calls [`Fetch::wait`]. Dropping it changes nothing.
#[must_use = "a fetch does nothing until it is awaited"]
pub enum Fetch<'a, T> {
    /// At hand. `None` only after it has been polled to its end.
    Ready(Option<Result<T>>),
    /// On its way. All I/O runs on the backend's own runtime; the future only awaits channels, so
    /// any executor, or none, can drive it.
    Pending(Deferred<'a, T>),
}

impl<'a, T> Fetch<'a, T> {
    /// An answer that is at hand.
    #[inline]
    pub fn ready(value: T) -> Self {
        Self::Ready(Some(Ok(value)))
    }

    /// A result that is at hand.
    #[inline]
    pub fn from_result(result: Result<T>) -> Self {
        Self::Ready(Some(result))
    }

    /// An answer to come.
    pub fn pending(future: impl Future<Output = Result<T>> + Send + 'a) -> Self {
        Self::Pending(Box::pin(future))
    }

    /// The answer of `future`, at hand if the future does not wait for anything.
    pub fn eager(future: impl Future<Output = Result<T>> + Send + 'a) -> Self {
        let mut future: Deferred<'a, T> = Box::pin(future);
        let waker = futures::task::noop_waker_ref();
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(result) => Self::from_result(result),
            Poll::Pending => Self::Pending(future),
        }
    }

    /// Whether the answer is at hand.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// The answer, blocking this thread until it is there.
    ///
    /// # Errors
    /// Those of the read.
    #[inline]
    pub fn wait(self) -> Result<T> {
        match self {
            Self::Ready(result) => result.expect("a fetch is awaited once"),
            Self::Pending(future) => futures::executor::block_on(future),
        }
    }

    /// Applies `f` to the answer.
    #[inline]
    pub fn and_then<U, F>(self, f: F) -> Fetch<'a, U>
    where
        T: 'a,
        F: FnOnce(T) -> Result<U> + Send + 'a,
    {
        match self {
            Self::Ready(result) => {
                Fetch::Ready(Some(result.expect("a fetch is awaited once").and_then(f)))
            }
            Self::Pending(future) => Fetch::pending(async move { future.await.and_then(f) }),
        }
    }
}

// The answer is moved out, never pinned.
impl<T> Unpin for Fetch<'_, T> {}

impl<T> Future for Fetch<'_, T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(result) => Poll::Ready(result.take().expect("a fetch is awaited once")),
            Self::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Fetch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready() {
            "Fetch::Ready"
        } else {
            "Fetch::Pending"
        })
    }
}
