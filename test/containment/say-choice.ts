// Prints what this machine allows, what is chosen by default, what that proves, and what `isolate` says.
import { createContainment, detectContainments } from '@whoa/tools';

interface Said {
  readonly technique?: string;
  readonly verified?: string;
  readonly survivors?: number;
  readonly error?: string;
}

async function run(isolate: boolean): Promise<Said> {
  const containment = createContainment({ isolate });
  try {
    const technique = await containment.ready();
    const argv = ['/bin/sh', '-c', 'setsid sleep 60 & (sleep 60 &) ; sleep 60; :'] as const;
    const command = await containment.start({ argv, env: { PATH: '/usr/bin:/bin' } });
    const { verified, survivors } = await command.end();
    return { technique, verified, survivors };
  } catch (error) {
    return { error: (error as Error).message };
  } finally {
    await containment[Symbol.asyncDispose]();
  }
}

const detected = await detectContainments();
const reasons = Object.fromEntries(detected.map(({ technique, reason }) => [technique, reason ?? 'works']));
console.log(JSON.stringify({ reasons, byDefault: await run(false), isolated: await run(true) }));
