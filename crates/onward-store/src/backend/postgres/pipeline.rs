//! Many messages in one round trip.
//!
//! The driver sends a message when its future is first polled, and the server responds in that
//! order. So all messages are polled once, in order, and then awaited, in order. A message that
//! cannot be encoded (a value of the wrong type) stops the sending: the server would not notice the
//! gap, and would commit the rest.

use std::pin::Pin;
use std::task::Poll;

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
    let mut answers = Vec::with_capacity(messages.len());
    std::future::poll_fn(|context| {
        for message in &mut messages {
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
        Poll::Ready(())
    })
    .await;
    let all_sent = answers.len() == messages.len() && !matches!(answers.last(), Some(Some(Err(_))));
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
