const STATES = { running: "running", paused: "paused", promoted: "promoted", rolled_back: "rolled back" };

/** The rollouts of the server: both versions side by side, and the reasons of the verdict. */
export default ({ html, milliseconds, number }) => {
  function RolloutCard({ rollout }) {
    const { model, from, to, state, share, nextStepInSeconds, waitsFor, inFlight, verdict } = rollout;
    const { old, new: fresh, reasons, agreement, drift, shadow } = verdict;
    const next = nextStepInSeconds === undefined ? "" : `, next step in ${Math.ceil(nextStepInSeconds)} s`;
    const rate = ({ requests, errors }) => `${number(errors)} of ${number(requests)}`;
    const times = ({ latency }, name) => {
      const one = latency.find((entry) => entry.class === name);
      return one ? `${milliseconds(one.p50)} / ${milliseconds(one.p90)} / ${milliseconds(one.p99)}` : "–";
    };
    const rows = [
      ["Share", `${number(100 - share)}%`, `${number(share)}%`],
      ["Errors", rate(old), rate(fresh)],
      ["In flight", "–", number(inFlight)],
      ...old.latency.map((entry) => [
        `p50 / p90 / p99, ${entry.class}`,
        times(old, entry.class),
        times(fresh, entry.class),
      ]),
    ];
    const bad = reasons.length > 0;
    return html`<section class="card rollout" aria-label=${`Rollout of ${model}`}>
      <div class="row">
        <h2>Rollout of ${model}</h2>
        <span class=${`state ${bad ? "unavailable" : "ready"}`}>${STATES[state]}${next}</span>
      </div>
      <table>
        <thead><tr><th></th><th class="number">version ${from}</th><th class="number">version ${to}</th></tr></thead>
        <tbody>
          ${rows.map(([title, a, b]) => html`<tr><td>${title}</td><td class="number">${a}</td><td class="number">${b}</td></tr>`)}
        </tbody>
      </table>
      ${waitsFor && html`<p>The step waits: ${waitsFor}.</p>`}
      ${agreement.map(
        ({ output, compared, disagreements }) =>
          html`<p>Output ${output}: ${number(disagreements)} of ${number(compared)} answers disagree.</p>`,
      )}
      ${shadow.answered + shadow.shed > 0 && html`<p class="muted">Shadows: ${number(shadow.answered)} compared, ${number(shadow.shed)} dropped.</p>`}
      ${drift.map(({ input, psi, ks }) => html`<p class="muted">Input ${input}: PSI ${number(psi, 2)}, distance ${number(ks, 2)}.</p>`)}
      ${bad && html`<ul role="status">${reasons.map(({ check, text }) => html`<li><b>${check}</b>: ${text}</li>`)}</ul>`}
    </section>`;
  }
  return ({ data }) =>
    html`${data?.map((rollout) => html`<${RolloutCard} key=${rollout.model} rollout=${rollout} />`)}`;
};
