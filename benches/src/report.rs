//! Figures beside their targets.

/// What a figure may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// One figure and what it may be.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    got: f64,
    target: Target,
    unit: &'static str,
    note: String,
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Figure>);

impl Report {
    /// Prints a figure and keeps it.
    pub(crate) fn figure(
        &mut self,
        name: &str,
        got: f64,
        target: Target,
        unit: &'static str,
        note: String,
    ) {
        let figure = Figure {
            name: name.to_owned(),
            got,
            target,
            unit,
            note,
        };
        println!("{}", figure.line());
        self.0.push(figure);
    }

    /// The number of figures that miss their target.
    pub(crate) fn missed(&self) -> usize {
        self.0.iter().filter(|figure| !figure.holds()).count()
    }

    /// The number of figures.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Figure {
    fn holds(&self) -> bool {
        match self.target {
            Target::AtMost(target) => self.got <= target,
            Target::AtLeast(target) => self.got >= target,
        }
    }

    fn line(&self) -> String {
        let verdict = if self.holds() { "ok  " } else { "MISS" };
        let (bound, target) = match self.target {
            Target::AtMost(target) => ("<=", target),
            Target::AtLeast(target) => (">=", target),
        };
        format!(
            "{verdict} {:<46} {:>9.2} {:<6} {bound} {target:>7} {}",
            self.name, self.got, self.unit, self.note
        )
    }
}
