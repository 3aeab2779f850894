// The contract every store must keep.
export {
  runStoreContract,
  formatContractReports,
  storeContract,
  runContractCase,
  type StoreKind,
} from './contract.ts';

// The stores of this package as kinds.
export { memoryStoreKind, sqliteStoreKind } from './kinds.ts';

// Random commands against a model.
export { checkStoreModel } from './model.ts';
