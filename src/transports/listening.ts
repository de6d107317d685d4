/** Ports of servers in this process. Invariant: a port that cannot be used is a ConfigurationError. */
import { ConfigurationError, thrownMessage } from './errors.ts';
import type { Validator } from './validation.ts';

const PORT_MAX = 65_535;
const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= PORT_MAX;

export const portNumber: Validator = { expected: `a port from 0 to ${PORT_MAX}`, test: isPort };

/** Reads the port of a command line. Throws ConfigurationError. */
export function portIn(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && isPort(port)) return port;
  throw new ConfigurationError(`expected ${portNumber.expected}, got ${text}`);
}

/** A server of Node.js, of any protocol. */
interface Server {
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  listen(port: number, host: string, listener: () => void): unknown;
  address(): string | BoundAddress | null;
}

interface BoundAddress {
  address: string;
  family: string;
  port: number;
}

/** Why a system refuses a port, and what to do. */
const REASONS: { readonly [code: string]: string } = {
  EADDRINUSE: 'another program uses this port; choose another one, or 0 for any that is free',
  EACCES: 'this user may not use this port; choose one above 1023, or 0 for any that is free',
  EADDRNOTAVAIL: 'this machine has no such address',
};

/** Resolves to the address when the server listens. Rejects with ConfigurationError. */
export function listening(server: Server, port: number, host: string): Promise<BoundAddress> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: Error & { code?: string }): void => {
      const code = cause.code ?? '';
      const why = Object.hasOwn(REASONS, code) ? `${REASONS[code]} (${code})` : thrownMessage(cause);
      reject(new ConfigurationError(`cannot listen on ${host}, port ${port}: ${why}`, { cause }));
    };
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      resolve(server.address() as BoundAddress);
    });
  });
}
