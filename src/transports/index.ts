/**
 * `runchart/transports`: conversations over a wire. Rule: web standards only; what needs Node stands in the program.
 */
export { createHandlers, type HandlerOptions } from './handlers.ts';
export { type SessionOptions, type Sessions, sessions } from './sessions.ts';
