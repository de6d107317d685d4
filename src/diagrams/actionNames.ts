/**
 * The names of a chart's actions in a drawing. A verb of runchart is named with the function it calls, for example
 * `log queuedEntries`. Invariant: an `ask` whose function has no name is named by its request, because the same factory makes
 * many of them: `ask answer steered`.
 */

/** Replaces context and event: each property of it exists and is this value again. */
const anyValue: object = new Proxy(() => anyValue, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : anyValue),
  has: () => true,
});

/** Returns the kind of a request, and the outcome or boundary in it; empty if it depends on more than that. */
function requestName(makeRequest: (args: object) => unknown): string {
  try {
    const { kind, outcome, boundary } = Object(makeRequest({ context: anyValue, event: anyValue }));
    return [kind, outcome, boundary].filter((part) => typeof part === 'string').join(' ');
  } catch {
    return '';
  }
}

/** Returns the object of a verb: the name of a function, or the value itself. */
function objectOf(verb: string, params: unknown): string {
  if (typeof params === 'string') return params;
  if (typeof params !== 'function') {
    const { to, event } = Object(params);
    return to === undefined ? '' : `${to} ${event?.type}`;
  }
  // The property `params` gives its name to a function that has none.
  if (params.name !== '' && params.name !== 'params') return params.name;
  return verb === 'ask' ? requestName(params as (args: object) => unknown) : '';
}

function actionName(action: unknown): string {
  if (typeof action === 'string') return action;
  const { type, params, name } = Object(action);
  if (typeof type !== 'string') return name || 'inline';
  const object = objectOf(type, params);
  // `update takeRun` and `tell tellRun` would repeat the verb.
  if (object !== '') return type === 'update' || object.startsWith(type) ? object : `${type} ${object}`;
  return type.replace(/^xstate\./, '');
}

/** Returns the names in the order in which the actions are executed. */
export const actionNames = (actions: readonly unknown[]): string[] => actions.map(actionName);
