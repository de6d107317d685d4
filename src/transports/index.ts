/**
 * `runchart/transports`: conversations over a wire. Rule: web standards only; what needs Node stands in the program.
 */
export { type SessionOptions, type Sessions, sessions } from './sessions.ts';
