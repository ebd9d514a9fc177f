SELECT current_setting('synchronous_commit'), current_setting('full_page_writes'),
    current_setting('synchronous_standby_names')
