/** Runs before each test file: fast-check draws what the sources decide, as everything else that is drawn. */
import { configureGlobal, readConfigureGlobal } from 'fast-check';
import { sourceSeed } from './sourceSeed.ts';

configureGlobal({ ...readConfigureGlobal(), seed: sourceSeed() });
