// Checks the delivery protocol with Spin in ever larger configurations, then that it finds the bugs which need a fault to show.
//   npm run long -- model [NUMBER OF CONFIGURATIONS]
import { checkModel } from '../model/check.ts';
import { large, slowModelBugs } from '../model/configurations.ts';

for (const configuration of large.slice(0, Number(process.argv[2] ?? large.length))) {
  const checked = await checkModel(configuration);
  console.log(JSON.stringify({ ...configuration, ...checked }));
  if (!checked.isWhole || checked.violation !== undefined) process.exitCode = 1;
}
for (const switches of slowModelBugs) {
  const { violation } = await checkModel({ workers: 2, faults: 1, compact: true, switches });
  console.log(`${violation === undefined ? 'MISSED' : 'rejected'} ${switches[0]}`);
  if (violation === undefined) process.exitCode = 1;
}
