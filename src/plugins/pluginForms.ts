/**
 * What a plugin may be. Rule: a phase that is misspelt is refused, since a guard that is never called guards nothing;
 * what else an object or an instance of a class holds is its own affair.
 */
import { ConfigurationError } from '../errors.ts';
import { callback, checkKeys, checkValues, type Forms, flag, isLiteral } from '../form.ts';
import { PHASES, type Plugin } from './plugin.ts';

export const pluginForms: Forms = new Map([['required', flag], ...PHASES.map((phase) => [phase, callback] as const)]);

/** Throws ConfigurationError for what is missing, unknown or cannot work. */
export function checkPlugin(plugin: Plugin): void {
  if (typeof plugin?.name !== 'string' || plugin.name === '') throw new ConfigurationError('a plugin needs a name');
  const prefix = `plugin "${plugin.name}": `;
  checkValues(prefix, plugin, pluginForms);
  if (!isLiteral(plugin)) return;
  const functions = Object.entries(plugin).filter(([, value]) => callback.takes(value));
  checkKeys(`${prefix}the phase `, Object.fromEntries(functions), PHASES);
}
