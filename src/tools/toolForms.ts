/**
 * What `defineTool` takes. Rule: a key that is misspelt is refused, since a tool that was meant to ask first would run
 * without asking.
 */
import { ConfigurationError } from '../errors.ts';
import {
  anything,
  callback,
  check,
  choice,
  type Form,
  flag,
  isLiteral,
  object,
  shown,
  span,
  text,
} from '../validation.ts';
import type { ToolDefinition } from './define.ts';

const approval: Form = {
  wanted: 'true, false or a function',
  takes: (value) => flag.takes(value) || callback.takes(value),
};

/** Name, parameters and execute have words of their own. */
export const toolForm = object(
  {
    ...{ name: anything, parameters: anything, execute: anything },
    description: text,
    readOnly: flag,
    idempotent: flag,
    timeoutMs: span(0),
    group: choice('read-group', 'write-group', 'bash-group', 'other-group'),
    needsApproval: approval,
  },
  { refuses: (_, tool) => isLiteral(tool) },
);
const NAME = /^[\w-]{1,64}$/;

/** Throws ConfigurationError for what is missing, unknown or cannot work. */
export function checkTool(tool: ToolDefinition): void {
  if (typeof tool?.name !== 'string' || tool.name === '') throw new ConfigurationError('a tool needs a name');
  if (!NAME.test(tool.name)) {
    const wanted = 'must be 1 to 64 of the characters a-z, A-Z, 0-9, _ and -: providers take no other';
    throw new ConfigurationError(`the name of the tool ${shown(tool.name)} ${wanted}`);
  }
  if (typeof tool.execute !== 'function') throw new ConfigurationError(`tool "${tool.name}" needs an execute function`);
  if (typeof tool.parameters?.['~standard']?.validate !== 'function') {
    throw new ConfigurationError(`tool "${tool.name}": parameters must be a Standard Schema (zod 4 is one)`);
  }
  const name = `tool "${tool.name}": `;
  check(name, tool, toolForm, name);
}
