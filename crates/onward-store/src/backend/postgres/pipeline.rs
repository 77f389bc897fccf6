//! Many messages in one round trip.
//!
//! The driver sends a message when its future is first polled, and the server answers in that order.
//! So all are polled once, in order, and then waited for, in order. A message that cannot even be
//! written (a value that does not fit its parameter) stops the sending: the server would not miss it,
//! and would commit the rest.

use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::Error as Driver;

/// Something that is sent when it is first polled, and done when its answer is here.
pub(super) type Sent<'s, A> = Pin<Box<dyn Future<Output = Result<A, Driver>> + Send + 's>>;

/// What ended a pipeline.
pub(super) struct Broken {
    /// Which message failed, counted from 0.
    pub(super) place: usize,
    pub(super) why: Driver,
    /// Whether all were sent, this one and those behind it too.
    pub(super) all_sent: bool,
}

/// Sends all, and waits for all, in order. The first that fails is the one to be told of: the others
/// behind it only say that their transaction has failed.
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
            // Answers come in the order of the messages: nobody behind this one is kept waiting.
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

    /// Pending for a while after it was sent.
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
    async fn all_are_sent_in_order_before_the_first_is_awaited() {
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
    async fn the_first_error_in_order_is_told() {
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
    async fn nothing_is_sent_behind_what_cannot_be_written() {
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
