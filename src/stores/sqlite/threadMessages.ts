/**
 * The messages between a SQLite store and its thread. Invariant: an error keeps its class and its code.
 */
import {
  ConfigurationError,
  CorruptLogError,
  RunchartError,
  SessionBusyError,
  StoreConflictError,
  thrownMessage,
} from '../../errors.ts';
import type { LogDatabase } from './logDatabase.ts';

/** The methods of the database that a store requests. */
export type RequestName = Exclude<keyof LogDatabase, 'commit' | 'texts'>;
export type Params<Name extends RequestName> = Parameters<LogDatabase[Name]>[0];
export type Value<Name extends RequestName> = ReturnType<LogDatabase[Name]>;

export interface Request {
  id: number;
  name: RequestName;
  params: unknown;
}

interface ErrorDescription {
  code: string;
  message: string;
  line: number | undefined;
  isCorrupt: boolean;
}

export type Answer = { id: number; value: unknown } | { id: number; error: ErrorDescription };

export function describeError(error: unknown): ErrorDescription {
  const failure = RunchartError.isRunchartError(error) ? error : new RunchartError('store', thrownMessage(error));
  const isCorrupt = failure instanceof CorruptLogError;
  return { code: failure.code, message: failure.message, line: isCorrupt ? failure.line : undefined, isCorrupt };
}

export function errorFrom({ code, message, line, isCorrupt }: ErrorDescription): RunchartError {
  if (isCorrupt) return new CorruptLogError(code, message, line);
  if (code === 'session_busy') return new SessionBusyError(message);
  if (code === 'store_conflict') return new StoreConflictError(message);
  if (code === 'configuration') return new ConfigurationError(message);
  return new RunchartError(code, message);
}
