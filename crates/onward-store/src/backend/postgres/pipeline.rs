//! Many messages in one round trip.
//!
//! The driver sends a message when its future is first polled, and the server responds in that
//! order. So all messages are polled once, in order, and then awaited, in order. A message that
//! cannot be encoded (a value of the wrong type) stops the sending: the server would not notice the
//! gap, and would commit the rest.
//!
//! Several transactions can share a connection if each of their pipelines is a whole transaction: none
//! waits for the responses of the others.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio_postgres::Error as Driver;

/// A message that is sent on its first poll, and completes with its response.
pub(super) type Sent<'s, A> = Pin<Box<dyn Future<Output = Result<A, Driver>> + Send + 's>>;

/// Failure of a pipeline.
pub(super) struct Broken {
    /// Index of the message that failed.
    pub(super) place: usize,
    pub(super) why: Driver,
    /// Whether all messages were sent, including those after the failed one.
    pub(super) all_sent: bool,
}

/// Sends all messages, then awaits all responses, in order. Returns the first error: later ones
/// only report that the transaction has failed.
pub(super) async fn in_order<A>(mut messages: Vec<Sent<'_, A>>) -> Result<Vec<A>, Broken> {
    let answers = std::future::poll_fn(|context| Poll::Ready(send(&mut messages, context))).await;
    receive(messages, answers).await
}

/// Whether others can still use a shared connection. They cannot after only a part of a transaction
/// was sent.
pub(super) type Usable = Mutex<bool>;

/// [`in_order`] on a connection that others share: their messages are sent before or after all of
/// these. Returns `None` if the connection is no longer usable; then nothing was sent.
pub(super) async fn in_order_shared<A>(
    mut messages: Vec<Sent<'_, A>>,
    usable: &Usable,
) -> Option<Result<Vec<A>, Broken>> {
    let sent = std::future::poll_fn(|context| {
        // A panic leaves the flag valid.
        let mut usable = usable.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = usable.then(|| send(&mut messages, context));
        *usable &= sent
            .as_ref()
            .is_some_and(|answers| !is_partly_sent(answers, messages.len()));
        Poll::Ready(sent)
    });
    let answers = sent.await?;
    Some(receive(messages, answers).await)
}

/// Polls all messages once, up to one that cannot be sent.
fn send<A>(messages: &mut [Sent<'_, A>], context: &mut Context<'_>) -> Vec<Answer<A>> {
    let mut answers = Vec::with_capacity(messages.len());
    for message in messages {
        let answer = match message.as_mut().poll(context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        let unsent = matches!(answer, Some(Err(_)));
        answers.push(answer);
        if unsent {
            break;
        }
    }
    answers
}

/// The response to a message, if it has arrived.
type Answer<A> = Option<Result<A, Driver>>;

fn is_partly_sent<A>(answers: &[Answer<A>], messages: usize) -> bool {
    answers.len() < messages || matches!(answers.last(), Some(Some(Err(_))))
}

/// Awaits the responses.
async fn receive<A>(messages: Vec<Sent<'_, A>>, answers: Vec<Answer<A>>) -> Result<Vec<A>, Broken> {
    let all_sent = !is_partly_sent(&answers, messages.len());
    let mut done = Vec::with_capacity(answers.len());
    for (place, (answer, message)) in answers.into_iter().zip(messages).enumerate() {
        let answer = match answer {
            Some(answer) => answer,
            // Responses arrive in order, so awaiting this one delays no other.
            None => message.await,
        };
        done.push(answer.map_err(|why| Broken {
            place,
            why,
            all_sent,
        })?);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn failure() -> Driver {
        "postgres://db?colour=blue"
            .parse::<tokio_postgres::Config>()
            .unwrap_err()
    }

    /// A message that is pending for this many polls.
    fn message<'s>(
        sent: &'s Mutex<Vec<u32>>,
        name: u32,
        polls: u32,
        answer: Option<Driver>,
    ) -> Sent<'s, u32> {
        let mut answer = Some(answer.map_or(Ok(name), Err));
        let mut polled = 0;
        Box::pin(std::future::poll_fn(move |context| {
            if polled == 0 {
                sent.lock().unwrap().push(name);
            }
            polled += 1;
            if polled > polls {
                return Poll::Ready(answer.take().unwrap());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    #[tokio::test]
    async fn sends_all_messages_in_order_before_awaiting_the_first() {
        let sent = Mutex::default();
        let messages = vec![
            message(&sent, 1, 3, None),
            message(&sent, 2, 0, None),
            message(&sent, 3, 1, None),
        ];
        assert_eq!(in_order(messages).await.ok(), Some(vec![1, 2, 3]));
        assert_eq!(*sent.lock().unwrap(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn returns_the_first_error_in_order() {
        let sent = Mutex::default();
        let messages = vec![
            message(&sent, 1, 1, None),
            message(&sent, 2, 5, Some(failure())),
            message(&sent, 3, 1, Some(failure())),
        ];
        let broken = in_order(messages).await.err().unwrap();
        assert_eq!((broken.place, broken.all_sent), (1, true));
    }

    #[tokio::test]
    async fn sends_nothing_after_a_message_that_cannot_be_encoded() {
        let sent = Mutex::default();
        let messages = vec![
            message(&sent, 1, 1, None),
            message(&sent, 2, 0, Some(failure())),
            message(&sent, 3, 1, None),
        ];
        let broken = in_order(messages).await.err().unwrap();
        assert_eq!((broken.place, broken.all_sent), (1, false));
        assert_eq!(*sent.lock().unwrap(), [1, 2]);
    }
}
