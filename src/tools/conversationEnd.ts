/**
 * What tools hold for a conversation longer than one call, such as a process in the background. Rule: it is released
 * when the conversation closes. A conversation is known by the list of its entries, which disappears with it.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ToolContext } from './tool.ts';

type Release = () => Promise<void>;

const conversations = new WeakMap<ToolContext, readonly LogEntry[]>();
const releases = new WeakMap<readonly LogEntry[], Set<Release>>();

/** Must be called before the tool receives the context. */
export const belongsTo = (context: ToolContext, entries: readonly LogEntry[]): void =>
  void conversations.set(context, entries);

/** Calls `release` once when the conversation of this call closes. It must not reject. */
export function onConversationEnd(context: ToolContext, release: Release): void {
  const entries = conversations.get(context);
  if (entries) releases.set(entries, (releases.get(entries) ?? new Set()).add(release));
}

/** Resolves when everything is released. */
export async function conversationEnded(entries: readonly LogEntry[]): Promise<void> {
  for (const release of releases.get(entries) ?? []) await release();
}
