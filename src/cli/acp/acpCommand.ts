/**
 * `runchart acp`: the agent of the program for editors, by the Agent Client Protocol over standard input and output.
 * Invariant: standard output carries nothing but the protocol. The end of the input, or a signal, ends the requests under
 * way and closes the sessions.
 */
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk';
import { ConfigurationError } from '../../errors.ts';
import { type AgentOptions, codingAgent } from '../codingAgent.ts';
import { CANCELLED } from '../exitCodes.ts';
import { sessionPlace } from '../sessions/sessionPlace.ts';
import { EditorAgent, type EditorAgentOptions } from './editorAgent.ts';

/** Serves one editor. Resolves to the exit code, or rejects with ConfigurationError. */
export async function acpCommand(options: AgentOptions, version: string, signal: AbortSignal): Promise<number> {
  if (options.cwd !== undefined) {
    throw new ConfigurationError('expected no --cwd: an editor names the directory of each session');
  }
  // A package that logs must not end up between the messages.
  console.log = console.info = console.debug = console.error;
  const place = await sessionPlace(options.store);
  const makeAgent: EditorAgentOptions['makeAgent'] = (cwd, servers) => codingAgent({ ...options, cwd, servers });
  const editor = new EditorAgent({ version, place, makeAgent });
  const connection = editor.app.connect(standardStreams());
  try {
    await Promise.race([connection.closed, signal.aborted || once(signal, 'abort')]);
    return signal.aborted ? CANCELLED : 0;
  } finally {
    await editor.close();
    connection.close();
    await place.close();
  }
}

function standardStreams(): Stream {
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>;
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  return ndJsonStream(output, input);
}
