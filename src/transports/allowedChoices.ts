/** The choices that a client's message may make for its request. Rule: nothing, unless the server allows it by name. */
import type { SendOptions } from '../conversation/sendOptions.ts';
import { RunchartError } from '../errors.ts';
import { flag, object, strings } from '../validation.ts';
import type { Fields } from './clientActs.ts';

/** The choices that a message may make for its request. An absent one is not allowed. */
export interface AllowedChoices {
  /** The names of the agent's `models` that a message may choose. */
  models?: readonly string[];
  /** The names of the agent's `outputs` that a message may choose. */
  outputs?: readonly string[];
  /** Any settings of the model. */
  settings?: boolean;
  /** Any of the agent's tools. */
  tools?: boolean;
  /** Any context. Tools must not trust it. */
  context?: boolean;
}

export const allowValidator = object({
  models: strings,
  outputs: strings,
  settings: flag,
  tools: flag,
  context: flag,
});

/** The fields of a message that choose something for its request. */
export const CHOICES = ['model', 'output', 'settings', 'tools', 'context'] as const;
type Choice = (typeof CHOICES)[number];

function isAllowed(choice: Choice, value: unknown, allow: AllowedChoices): boolean {
  if (choice === 'model') return allow.models?.includes(value as string) === true;
  if (choice === 'output') return allow.outputs?.includes(value as string) === true;
  return allow[choice] === true;
}

/** The choices of a client. The conversation checks their values. Throws RunchartError, code not_allowed. */
export function allowedChoices(fields: Fields, allow: AllowedChoices = {}): Pick<SendOptions, Choice> {
  const chosen = CHOICES.filter((choice) => fields[choice] !== undefined);
  const refused = chosen.find((choice) => !isAllowed(choice, fields[choice], allow));
  if (refused !== undefined) {
    const message = `this server does not let a message choose this ${refused}; leave it out. Nothing was changed`;
    throw new RunchartError('not_allowed', message);
  }
  return Object.fromEntries(chosen.map((choice) => [choice, fields[choice]]));
}
