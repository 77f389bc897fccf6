//! Two engines on one database, several commands at once. Each is answered as if they had come one
//! after the other, in some order; and the rows are as that order leaves them.

use onward_engine::world::World;

use crate::ask::{Ask, What};
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
        let mut running = Vec::new();
        for (place, (agent, ask)) in asks.into_iter().enumerate() {
            let engine = self.home.engines[place % self.home.engines.len()].clone();
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
            if let What::Sweep { .. } = ask.what {
                self.watcher = watcher;
            }
            self.log(&ask, &said);
            sent.push((agent, ask, said));
        }
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
            let sweeps = |ask: &Ask| matches!(ask.what, What::Sweep { .. });
            if !(sweeps(&ask) && asks.iter().any(|(_, before)| sweeps(before))) {
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
            let mut after = model.clone();
            let expected = after.follow(ask, self.home.stage.now(), Some(said));
            let (expected, said) = (expected.without_lines(), said.clone().without_lines());
            if expected != said {
                let depth = left.len();
                why.push(format!(
                    "with {depth} left, {ask}\n  is answered {said:?}\n  and not {expected:?}"
                ));
                continue;
            }
            let mut rest = left.to_vec();
            rest.remove(place);
            let found = self.some_order(&after, &rest, rows, why);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
