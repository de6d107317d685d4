/** Finds the faults for which a strict provider refuses a request's messages. Invariant: it reads only the messages. */
import type { Message } from '../../machines/internal.ts';

export function pairingFaults(messages: readonly Message[]): string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === 'tool') faults.push(`a result of ${message.callId} stands without its call`);
    if (message?.role !== 'assistant') continue;
    if (message.content.length === 0 && message.toolCalls.length === 0) faults.push('an assistant message is empty');
    for (const { callId } of message.toolCalls) {
      if (seen.has(callId)) faults.push(`the call id ${callId} is there twice`);
      seen.add(callId);
      const next = messages[index + 1];
      if (next?.role === 'tool' && next.callId === callId) index += 1;
      else faults.push(`${callId} has no result in its place`);
    }
  }
  if (messages.at(-1)?.role === 'assistant') faults.push('the model has the last word');
  return faults;
}
