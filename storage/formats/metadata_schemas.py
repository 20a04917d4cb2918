"""What records of the metadata log are made of, as Kafka 4.3.1 reads them: all of them.

The lines are those of `coordinator_schemas`. A value begins with its frame, type and version
(`metadata_records`), and every version is flexible. Source: Kafka, common/metadata/*.json.
"""

METADATA = """
value 0 RegisterBrokerRecord 4 flexible 0
 brokerId int32
 isMigratingZkBroker bool 2+
 incarnationId uuid
 brokerEpoch int64
 endPoints []struct
  name string
  host string
  port uint16
  securityProtocol int16
 features []struct
  name string
  minSupportedVersion int16
  maxSupportedVersion int16
 rack string nullable
 fenced bool
 inControlledShutdown bool 1+
 logDirs []uuid 3+ tag 0
 cordonedLogDirs []uuid 4+ nullable tag 1
value 1 UnregisterBrokerRecord 0 flexible 0
 brokerId int32
 brokerEpoch int64
value 2 TopicRecord 0 flexible 0
 name string
 topicId uuid
value 3 PartitionRecord 2 flexible 0
 partitionId int32
 topicId uuid
 replicas []int32
 isr []int32
 removingReplicas []int32
 addingReplicas []int32
 leader int32
 leaderRecoveryState int8 tag 0
 leaderEpoch int32
 partitionEpoch int32
 directories []uuid 1+
 eligibleLeaderReplicas []int32 2+ nullable tag 1
 lastKnownElr []int32 2+ nullable tag 2
value 4 ConfigRecord 0 flexible 0
 resourceType int8
 resourceName string
 name string
 value string nullable
value 5 PartitionChangeRecord 2 flexible 0
 partitionId int32
 topicId uuid
 isr []int32 nullable tag 0
 leader int32 tag 1
 replicas []int32 nullable tag 2
 removingReplicas []int32 nullable tag 3
 addingReplicas []int32 nullable tag 4
 leaderRecoveryState int8 tag 5
 directories []uuid 1+ nullable tag 8
 eligibleLeaderReplicas []int32 2+ nullable tag 6
 lastKnownElr []int32 2+ nullable tag 7
value 7 FenceBrokerRecord 0 flexible 0
 id int32
 epoch int64
value 8 UnfenceBrokerRecord 0 flexible 0
 id int32
 epoch int64
value 9 RemoveTopicRecord 0 flexible 0
 topicId uuid
value 10 DelegationTokenRecord 0 flexible 0
 owner string
 requester string
 renewers []string
 issueTimestamp int64
 maxTimestamp int64
 expirationTimestamp int64
 tokenId string
value 11 UserScramCredentialRecord 0 flexible 0
 name string
 mechanism int8
 salt bytes
 storedKey bytes
 serverKey bytes
 iterations int32
value 12 FeatureLevelRecord 0 flexible 0
 name string
 featureLevel int16
value 14 ClientQuotaRecord 0 flexible 0
 entity []struct
  entityType string
  entityName string nullable
 key string
 value float64
 remove bool
value 15 ProducerIdsRecord 0 flexible 0
 brokerId int32
 brokerEpoch int64
 nextProducerId int64
value 17 BrokerRegistrationChangeRecord 3 flexible 0
 brokerId int32
 brokerEpoch int64
 fenced int8 tag 0
 inControlledShutdown int8 1+ tag 1
 logDirs []uuid 2+ tag 2
 cordonedLogDirs []uuid 3+ nullable tag 3
value 18 AccessControlEntryRecord 0 flexible 0
 id uuid
 resourceType int8
 resourceName string
 patternType int8
 principal string
 host string
 operation int8
 permissionType int8
value 19 RemoveAccessControlEntryRecord 0 flexible 0
 id uuid
value 20 NoOpRecord 0 flexible 0
value 21 ZkMigrationStateRecord 0 flexible 0
 zkMigrationState int8
value 22 RemoveUserScramCredentialRecord 0 flexible 0
 name string
 mechanism int8
value 23 BeginTransactionRecord 0 flexible 0
 name string nullable tag 0
value 24 EndTransactionRecord 0 flexible 0
value 25 AbortTransactionRecord 0 flexible 0
 reason string nullable tag 0
value 26 RemoveDelegationTokenRecord 0 flexible 0
 tokenId string
value 27 RegisterControllerRecord 0 flexible 0
 controllerId int32
 incarnationId uuid
 zkMigrationReady bool
 endPoints []struct
  name string
  host string
  port uint16
  securityProtocol int16
 features []struct
  name string
  minSupportedVersion int16
  maxSupportedVersion int16
value 28 ClearElrRecord 0 flexible 0
 topicName string
"""
