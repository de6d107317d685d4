/**
 * Diagnostics as clients receive them. Rule: an error of a store, a plugin or the system may name files and addresses of the server, so
 * its text stays in the log of the server. A client receives the code and the other details.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import type { ConversationView } from '../../projector/view.ts';

const GENERAL = 'the log of the server contains the details';

/** Their details are what a model or its server sent. */
const OF_THE_MODEL: ReadonlySet<string> = new Set(['provider_warning', 'refusal']);

function shownDetail(code: string, detail: Json): Json {
  if (OF_THE_MODEL.has(code) || typeof detail !== 'object' || detail === null || Array.isArray(detail)) return detail;
  const shown: { [name: string]: Json } = { ...detail };
  for (const name of ['message', 'why']) if (typeof shown[name] === 'string') shown[name] = GENERAL;
  // Ignored settings and rules name the files that contain them.
  for (const name of ['ignored', 'rules']) if (Array.isArray(shown[name])) shown[name] = shown[name].length;
  return shown;
}

function shownDiagnostic<T extends { readonly code: string; readonly detail?: Json }>(diagnostic: T): T {
  const { code, detail } = diagnostic;
  return detail === undefined ? diagnostic : { ...diagnostic, detail: shownDetail(code, detail) };
}

export const shownEntry = (entry: LogEntry): LogEntry => (entry.type === 'diagnostic' ? shownDiagnostic(entry) : entry);

export const shownView = (view: ConversationView): ConversationView => ({
  ...view,
  diagnostics: view.diagnostics.map(shownDiagnostic),
});
