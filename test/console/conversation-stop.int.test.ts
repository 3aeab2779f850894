import { testStops } from './stop-anywhere.ts';

testStops([
  { policy: 'steer', moment: 'before', where: 'the same page' },
  { policy: 'queue', moment: 'during', where: 'a reloaded page' },
  { policy: 'replace', moment: 'after', where: 'a second tab' },
  { policy: 'merge', moment: 'before', where: 'a second tab' },
  { policy: 'reject', moment: 'during', where: 'the same page' },
]);
