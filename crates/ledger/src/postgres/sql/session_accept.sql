-- Accepts name their rows by key: their plans do not depend on the values, and making them anew costs more than using them.
SET plan_cache_mode = force_generic_plan;
