//! One run: a seed, its agents, its model, and the engines that they drive.

use std::sync::Arc;
use std::time::Duration;

use onward_core::watcher::Watcher;
use onward_core::{StepStatus, Timestamp};
use onward_engine::world::World;

use crate::agents::Crowd;
use crate::ask::{Ask, What, caller};
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::home::Home;
use crate::model::{Model, Plan};
use crate::reads;
use crate::rows::Rows;
use crate::said::Said;

/// How many of the last commands a failure shows.
const SHOWN: usize = 30;

/// How many characters of each.
const LONGEST: usize = 1_500;

pub(crate) struct Scene<'h> {
    pub(crate) home: &'h Home,
    pub(crate) dice: Dice,
    pub(crate) crowd: Crowd,
    pub(crate) model: Model,
    pub(crate) watcher: Watcher,
    pub(crate) coverage: Coverage,
    /// What was asked and answered.
    log: Vec<String>,
}

impl<'h> Scene<'h> {
    pub(crate) async fn open(home: &'h Home, seed: u64) -> Result<Self, String> {
        home.stage.reset(seed);
        let tenants = ["here", "there"].map(|name| Arc::from(format!("{name}-{seed}")));
        for tenant in &tenants {
            let made = home.engine().create_tenant(tenant).await;
            made.map_err(|why| format!("no tenant: {why}"))?;
        }
        let dice = Dice::new(seed);
        let mut model = Model::default();
        let watcher = home.engine().watcher();
        model.watch.begin(home.stage.now());
        Ok(Self {
            home,
            crowd: Crowd::new(Dice::new(seed ^ 0xA6E7), tenants),
            dice,
            model,
            watcher,
            coverage: Coverage::default(),
            log: Vec::new(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.home.stage.now()
    }

    /// The last commands, for people.
    pub(crate) fn story(&self) -> String {
        let from = self.log.len().saturating_sub(SHOWN);
        self.log[from..].join("\n")
    }

    pub(crate) fn log(&mut self, ask: &Ask, said: &Said) {
        self.coverage.hear(said);
        let (now, number) = (self.now(), self.log.len() + 1);
        let line = format!("{number}. {now} {ask}\n      → {said:?}");
        self.log.push(line.chars().take(LONGEST).collect());
    }

    /// Time goes on, mostly a little; to the brink of a stall, and past it; sometimes back.
    pub(crate) fn let_time_pass(&mut self) {
        let stage = &self.home.stage;
        let now = stage.now();
        self.crowd.on_the_brink = false;
        let span = match self.dice.below(100) {
            0..45 => self.dice.below(1_500),
            45..60 => self.dice.below(60_000),
            60..66 => self.dice.below(40 * 60_000),
            66..84 => return self.go_to_the_brink(),
            84..87 => self.dice.below(3 * 86_400_000),
            87..89 => {
                self.model.watch.set_back(now);
                let back = i64::try_from(self.dice.below(5_000)).unwrap_or(0);
                stage.set(Timestamp::from_millis(now.as_millis() - back));
                return;
            }
            _ => 0,
        };
        stage.pass(Duration::from_millis(span));
    }

    /// Exactly to the last instant of something, or one past it.
    fn go_to_the_brink(&mut self) {
        let now = self.now();
        let steps = self.model.plans.values().flat_map(|plan| {
            let steps = plan.steps.iter();
            steps.filter_map(|step| step.alive_until(plan.threshold))
        });
        let convicted = self.model.first_conviction().map(|(at, _)| at);
        let mut brinks: Vec<Timestamp> = steps.chain(convicted).collect();
        brinks.retain(|at| *at >= now);
        brinks.sort();
        // The nearest ones most often: a jump far ahead ends all others.
        brinks.truncate(3);
        let verdict = convicted.filter(|at| *at >= now && self.dice.percent(50));
        if let Some(at) = verdict.or(self.dice.pick(&brinks).copied()) {
            let past = Duration::from_millis(self.dice.below(2));
            self.home.stage.set(at);
            self.home.stage.pass(past);
            self.crowd.on_the_brink = true;
        }
    }

    /// One command, and whether it was answered as it should be.
    pub(crate) async fn say(&mut self, agent: usize, ask: &Ask) -> Result<(), String> {
        let engine = &self.home.engines[self.dice.place(self.home.engines.len())];
        let said = ask.put(engine, &mut self.watcher).await;
        self.log(ask, &said);
        self.follow(agent, ask, &said)
    }

    pub(crate) fn follow(&mut self, agent: usize, ask: &Ask, said: &Said) -> Result<(), String> {
        let expected = self.model.follow(ask, self.now(), Some(said));
        if *said != expected {
            return Err(format!(
                "the engine answers\n  {said:?}\nthe model says\n  {expected:?}"
            ));
        }
        self.crowd.hear(agent, ask, said);
        self.is_woken_in_time(said)
    }

    /// The sweep must not sleep past what it should act upon.
    fn is_woken_in_time(&self, said: &Said) -> Result<(), String> {
        let Said::Swept { next_at, .. } = said else {
            return Ok(());
        };
        if self.now() <= self.model.watch.catches_up_at {
            return Ok(());
        }
        match (self.model.first_conviction(), next_at) {
            (Some((last, key)), None) => Err(format!(
                "the sweep sleeps for ever, and {key:?} is due after {last}"
            )),
            (Some((last, key)), Some(next_at)) if *next_at > last.next() => Err(format!(
                "the sweep sleeps until {next_at}, and {key:?} is due after {last}"
            )),
            _ => Ok(()),
        }
    }

    /// Whether every row is as it should be.
    pub(crate) async fn look(&mut self) -> Result<(), String> {
        let engine = self.home.engine();
        if self.dice.percent(25) {
            for (key, plan) in &self.model.plans {
                reads::shown(engine, key, plan).await?;
            }
            for tenant in &self.crowd.tenants {
                reads::listed(engine, tenant, &self.model).await?;
            }
        }
        let rows = Rows::read(engine, &self.crowd.tenants).await?;
        rows.fit(&mut self.model)
    }

    /// The end: every row once more, and the database's own check; then everything goes, for the
    /// next seed.
    pub(crate) async fn close(&mut self) -> Result<(), String> {
        self.look().await?;
        self.finish_what_can_be().await?;
        self.look().await?;
        let engine = self.home.engine();
        for tenant in &self.crowd.tenants {
            let checked = engine.verify(&caller(tenant, "doctor")).await;
            let checked = checked.map_err(|why| format!("no check: {why}"))?;
            if !checked.faults.is_empty() {
                return Err(format!("{:#?}", checked.faults));
            }
        }
        self.coverage.read(&self.model);
        let keys: Vec<_> = self.model.plans.keys().cloned().collect();
        for (tenant, plan) in keys {
            let gone = engine.delete_plan(&caller(&tenant, "cleaner"), plan).await;
            gone.map_err(|why| format!("plan {plan} cannot be deleted: {why}"))?;
        }
        Ok(())
    }

    /// Plans end: somebody who asks, submits and decides long enough gets every plan that nobody gave
    /// up to its end.
    async fn finish_what_can_be(&mut self) -> Result<(), String> {
        let keys: Vec<_> = self.model.plans.keys().cloned().collect();
        for (tenant, id) in keys {
            for turn in 0.. {
                let plan = &self.model.plans[&(Arc::clone(&tenant), id)];
                if plan.is_over() || plan.steps.is_empty() {
                    break;
                }
                if turn > 400 {
                    return Err(format!("plan {id} does not end"));
                }
                let what = self.crowd.push_on(plan);
                self.home
                    .stage
                    .pass(Duration::from_secs(self.dice.below(90)));
                let ask = Ask {
                    tenant: Arc::clone(&tenant),
                    who: "closer".to_owned(),
                    what,
                };
                self.say(0, &ask).await?;
            }
        }
        Ok(())
    }
}

impl Crowd {
    /// What brings a plan nearer to its end.
    fn push_on(&mut self, plan: &Plan) -> What {
        let is = |status| {
            let mut steps = plan.steps.iter();
            steps
                .find(|step| step.status == status)
                .map(|step| step.id())
        };
        if let Some(step) = is(StepStatus::AwaitingInput) {
            return What::Decide(step, onward_core::event::Decision::Approve, None);
        }
        match is(StepStatus::InProgress) {
            Some(step) => self.result_for(step),
            None => What::Next {
                plan: plan.id,
                session: None,
                include_stalled: true,
            },
        }
    }
}
