/** The relay in the same process as this page. */

import { api } from "./broker";
import { Conflicts } from "./conflicts";

export const relay = new Conflicts(api);
