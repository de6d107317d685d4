/**
 * Changes that change nothing, by chart, each with the reason why no path of that chart can tell. Rule: the list is
 * exactly the survivors.
 */
export const equivalents: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  LLM_CALL: {
    'LLM_CALL.backingOff on timer.elapsed [waitIsOver] without its guard':
      'Alone, the chart has no timer but its own wait. The states are shared with RUN, where the deadline rings too and this very change is killed.',
  },
};
