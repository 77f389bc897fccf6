//! Two engines on one database, several commands at once. Each is answered as if they had come one
//! after the other, in some order; and the rows are as that order leaves them. Sometimes the store
//! fails meanwhile: then those who were not answered may have been, or not.

use onward_core::Event;
use onward_engine::step::Asked;
use onward_engine::world::World;

use crate::ask::{Ask, What};
use crate::faults::NEVER;
use crate::model::Model;
use crate::rows::Rows;
use crate::said::Said;
use crate::scene::Scene;

/// A command that was sent, by which agent, and what came back.
type Sent = (usize, Ask, Said);

impl Scene<'_> {
    pub(crate) async fn race(&mut self) -> Result<(), String> {
        self.crowd.leave_the_plan();
        let (agent, first) = self.crowd.wish(&self.model);
        if self.dice.percent(40) || self.model.plans.is_empty() {
            return self.say(agent, &first).await;
        }
        let asks = self.runners();
        // A sweep is not one change, but one for each plan: it runs without faults.
        let sweeps = asks.iter().any(|(_, ask)| is_sweep(ask));
        if !sweeps && self.dice.percent(25) {
            self.home.faults.strike_after(self.dice.order_below(20));
        }
        let mut running = Vec::new();
        for (agent, ask) in asks {
            // Several on one engine are written together, where they come together.
            let engine = self.dice.pick(&self.home.engines).cloned();
            let engine = engine.expect("there are engines");
            let mut watcher = self.watcher;
            running.push(tokio::spawn(async move {
                let said = ask.put(&engine, &mut watcher).await;
                (agent, ask, said, watcher)
            }));
        }
        let mut sent: Vec<Sent> = Vec::new();
        for runs in running {
            let ended = runs
                .await
                .map_err(|why| format!("a command panics: {why}"))?;
            let (agent, ask, said, watcher) = ended;
            if is_sweep(&ask) {
                self.watcher = watcher;
            }
            self.log(&ask, &said);
            sent.push((agent, ask, said));
        }
        self.home.faults.strike_after(NEVER);
        let rows = Rows::read(self.home.engine(), &self.crowd.tenants).await?;
        let mut why = Vec::new();
        let Some(model) = self.some_order(&self.model, &sent, &rows, &mut why) else {
            let count = sent.len();
            let why = why.join("\n");
            return Err(format!(
                "no order of the last {count} commands explains what happened:\n{why}"
            ));
        };
        self.model = model;
        for (agent, ask, said) in &sent {
            self.crowd.hear(*agent, ask, said);
            if matches!(said, Said::Unavailable(_)) {
                // Now somebody is told: what was kept for a plan that is gone stands in no row.
                let again = ask.again(&mut self.dice);
                self.say(*agent, &again).await?;
            }
        }
        Ok(())
    }

    /// Two to four commands about one plan; at most one of them sweeps.
    fn runners(&mut self) -> Vec<(usize, Ask)> {
        self.crowd.keep_to_a_plan(&self.model);
        let count = self.dice.place(3) + 2;
        let mut asks: Vec<(usize, Ask)> = Vec::new();
        while asks.len() < count {
            let (agent, ask) = self.crowd.wish(&self.model);
            if !(is_sweep(&ask) && asks.iter().any(|(_, before)| is_sweep(before))) {
                asks.push((agent, ask));
            }
        }
        asks
    }

    /// The model after an order that explains the answers and the rows, if there is one.
    fn some_order(
        &self,
        model: &Model,
        left: &[Sent],
        rows: &Rows,
        why: &mut Vec<String>,
    ) -> Option<Model> {
        if left.is_empty() {
            let mut after = model.clone();
            return match rows.fit(&mut after) {
                Ok(()) => Some(after),
                Err(misfit) => {
                    why.push(misfit);
                    None
                }
            };
        }
        for place in 0..left.len() {
            let (_, ask, said) = &left[place];
            let mut rest = left.to_vec();
            rest.remove(place);
            let mut after = model.clone();
            if let Said::Unavailable(_) = said {
                // It was done, or it was not.
                let rumour = rumour(ask, rows);
                after.follow(ask, self.home.stage.now(), rumour.as_ref());
                let done = self.some_order(&after, &rest, rows, why);
                let found = done.or_else(|| self.some_order(model, &rest, rows, why));
                if found.is_some() {
                    return found;
                }
                continue;
            }
            let expected = after.follow(ask, self.home.stage.now(), Some(said));
            let (expected, said) = (expected.without_lines(), said.clone().without_lines());
            if expected != said {
                let depth = left.len();
                why.push(format!(
                    "with {depth} left, {ask}\n  is answered {said:?}\n  and not {expected:?}"
                ));
                continue;
            }
            let found = self.some_order(&after, &rest, rows, why);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// What others may have heard of a command that was not answered: which review it began.
fn rumour(ask: &Ask, rows: &Rows) -> Option<Said> {
    let What::Question(question) = &ask.what else {
        return None;
    };
    let begun = rows.0.iter().flat_map(|((tenant, plan), whole)| {
        let own = whole.trail.iter().filter(move |_| *tenant == ask.tenant);
        own.filter_map(|entry| match &entry.event {
            Event::UserReviewed { step, review, .. } if *step == question.step => Some(Asked {
                review: *review,
                step: *step,
                plan: *plan,
            }),
            _ => None,
        })
    });
    begun.last().map(Said::Asked)
}

fn is_sweep(ask: &Ask) -> bool {
    matches!(ask.what, What::Sweep { .. })
}
