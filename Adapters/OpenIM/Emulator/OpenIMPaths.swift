/// Every REST path of the reference (§6), so that a call to one that is not emulated is counted by its name.
extension OpenIMEmulator {
  static let knownPaths: Set<String> = {
    let groups: [String: String] = [
      "auth": "get_admin_token get_user_token parse_token force_logout",
      "user": """
        user_register get_users_info update_user_info update_user_info_ex set_global_msg_recv_opt get_users \
        get_all_users_uid account_check get_users_online_status get_users_online_token_detail get_users_status \
        subscribe_users_status get_subscribe_users_status get_user_client_config set_user_client_config \
        del_user_client_config page_user_client_config process_user_command_add process_user_command_delete \
        process_user_command_update process_user_command_get process_user_command_get_all \
        add_notification_account update_notification_account search_notification_account
        """,
      "friend": """
        add_friend add_friend_response get_friend_apply_list get_self_friend_apply_list \
        get_self_unhandled_apply_count get_designated_friend_apply get_friend_list get_designated_friends \
        get_specified_friends_info is_friend get_friend_id update_friends set_friend_remark delete_friend \
        import_friend add_black remove_black get_black_list get_specified_blacks get_incremental_blacks \
        get_incremental_friends get_full_friend_user_ids
        """,
      "group": """
        create_group get_groups_info get_group_member_list get_group_members_info get_group_member_user_id \
        get_joined_group_list invite_user_to_group join_group group_application_response \
        get_recv_group_applicationList get_user_req_group_applicationList get_group_application_unhandled_count \
        kick_group quit_group transfer_group dismiss_group mute_group_member cancel_mute_group_member mute_group \
        cancel_mute_group set_group_info_ex set_group_info set_group_member_info get_incremental_join_groups \
        get_full_join_group_ids get_incremental_group_members_batch get_full_group_member_user_ids get_groups \
        get_group_abstract_info
        """,
      "msg": """
        send_msg batch_send_msg send_simple_msg send_business_notification search_msg newest_seq pull_msg_by_seq \
        get_conversations_has_read_and_max_seq mark_conversation_as_read mark_msgs_as_read \
        set_conversation_has_read_seq revoke_msg delete_msgs clear_conversation_msg user_clear_all_msg \
        delete_msg_phsical_by_seq delete_msg_physical get_server_time check_msg_is_send_success
        """,
      "jssdk": "get_active_conversations get_conversations",
      "conversation": """
        get_all_conversations get_conversation get_conversations get_owner_conversation set_conversations \
        get_incremental_conversations get_full_conversation_ids get_sorted_conversation_list \
        get_pinned_conversation_ids get_not_notify_conversation_ids delete_conversations \
        update_conversations_by_user
        """,
      "object": """
        part_limit part_size initiate_multipart_upload auth_sign complete_multipart_upload access_url \
        initiate_form_data complete_form_data
        """,
      "third": "fcm_update_token set_app_badge logs/upload logs/delete logs/search",
      "statistics": "user/register user/active group/create group/active",
    ]
    return Set(
      groups.flatMap { group, names in names.split(separator: " ").map { "/\(group)/\($0)" } })
  }()
}
